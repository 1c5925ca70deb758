-- Classic Models: eight tables, in the order in which their foreign keys allow them to be created and filled.
-- Run inside an empty database with CHARACTER SET utf8mb4.

CREATE TABLE productlines (
  productLine      VARCHAR(50) NOT NULL PRIMARY KEY,
  textDescription  VARCHAR(4000),
  htmlDescription  MEDIUMTEXT,
  image            MEDIUMBLOB
) ENGINE = InnoDB;

CREATE TABLE products (
  productCode         VARCHAR(15)    NOT NULL PRIMARY KEY,
  productName         VARCHAR(70)    NOT NULL,
  productLine         VARCHAR(50)    NOT NULL,
  productScale        VARCHAR(10)    NOT NULL,
  productVendor       VARCHAR(50)    NOT NULL,
  productDescription  TEXT           NOT NULL,
  quantityInStock     SMALLINT       NOT NULL,
  buyPrice            DECIMAL(10, 2) NOT NULL,
  MSRP                DECIMAL(10, 2) NOT NULL,
  CONSTRAINT products_belong_to_a_line FOREIGN KEY (productLine) REFERENCES productlines (productLine)
) ENGINE = InnoDB;

CREATE TABLE offices (
  officeCode    VARCHAR(10) NOT NULL PRIMARY KEY,
  city          VARCHAR(50) NOT NULL,
  phone         VARCHAR(50) NOT NULL,
  addressLine1  VARCHAR(50) NOT NULL,
  addressLine2  VARCHAR(50),
  state         VARCHAR(50),
  country       VARCHAR(50) NOT NULL,
  postalCode    VARCHAR(15) NOT NULL,
  territory     VARCHAR(10) NOT NULL
) ENGINE = InnoDB;

CREATE TABLE employees (
  employeeNumber  INT          NOT NULL PRIMARY KEY,
  lastName        VARCHAR(50)  NOT NULL,
  firstName       VARCHAR(50)  NOT NULL,
  extension       VARCHAR(10)  NOT NULL,
  email           VARCHAR(100) NOT NULL,
  officeCode      VARCHAR(10)  NOT NULL,
  reportsTo       INT,
  jobTitle        VARCHAR(50)  NOT NULL,
  CONSTRAINT employees_sit_in_an_office FOREIGN KEY (officeCode) REFERENCES offices (officeCode),
  CONSTRAINT employees_report_to_one FOREIGN KEY (reportsTo) REFERENCES employees (employeeNumber)
) ENGINE = InnoDB;

CREATE TABLE customers (
  customerNumber          INT         NOT NULL PRIMARY KEY,
  customerName            VARCHAR(50) NOT NULL,
  contactLastName         VARCHAR(50) NOT NULL,
  contactFirstName        VARCHAR(50) NOT NULL,
  phone                   VARCHAR(50) NOT NULL,
  addressLine1            VARCHAR(50) NOT NULL,
  addressLine2            VARCHAR(50),
  city                    VARCHAR(50) NOT NULL,
  state                   VARCHAR(50),
  postalCode              VARCHAR(15),
  country                 VARCHAR(50) NOT NULL,
  salesRepEmployeeNumber  INT,
  creditLimit             DECIMAL(10, 2),
  CONSTRAINT customers_have_a_rep FOREIGN KEY (salesRepEmployeeNumber) REFERENCES employees (employeeNumber)
) ENGINE = InnoDB;

CREATE TABLE payments (
  customerNumber  INT            NOT NULL,
  checkNumber     VARCHAR(50)    NOT NULL,
  paymentDate     DATE           NOT NULL,
  amount          DECIMAL(10, 2) NOT NULL,
  PRIMARY KEY (customerNumber, checkNumber),
  CONSTRAINT payments_come_from_a_customer FOREIGN KEY (customerNumber) REFERENCES customers (customerNumber)
) ENGINE = InnoDB;

CREATE TABLE orders (
  orderNumber     INT         NOT NULL PRIMARY KEY,
  orderDate       DATE        NOT NULL,
  requiredDate    DATE        NOT NULL,
  shippedDate     DATE,
  status          VARCHAR(15) NOT NULL,
  comments        TEXT,
  customerNumber  INT         NOT NULL,
  CONSTRAINT orders_come_from_a_customer FOREIGN KEY (customerNumber) REFERENCES customers (customerNumber)
) ENGINE = InnoDB;

CREATE TABLE orderdetails (
  orderNumber      INT            NOT NULL,
  productCode      VARCHAR(15)    NOT NULL,
  quantityOrdered  INT            NOT NULL,
  priceEach        DECIMAL(10, 2) NOT NULL,
  orderLineNumber  SMALLINT       NOT NULL,
  PRIMARY KEY (orderNumber, productCode),
  CONSTRAINT lines_belong_to_an_order FOREIGN KEY (orderNumber) REFERENCES orders (orderNumber),
  CONSTRAINT lines_name_a_product FOREIGN KEY (productCode) REFERENCES products (productCode)
) ENGINE = InnoDB;
