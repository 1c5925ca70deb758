-- The eleven tables of the trader, made in the schema that the search path names.

CREATE TABLE categories (
  category_id   smallint PRIMARY KEY,
  category_name varchar(15) NOT NULL,
  description   text,
  picture       bytea
);

CREATE TABLE suppliers (
  supplier_id   smallint PRIMARY KEY,
  company_name  varchar(40) NOT NULL,
  contact_name  varchar(30),
  contact_title varchar(30),
  address       varchar(60),
  city          varchar(15),
  region        varchar(15),
  postal_code   varchar(10),
  country       varchar(15),
  phone         varchar(24),
  fax           varchar(24),
  homepage      text
);

CREATE TABLE products (
  product_id        smallint PRIMARY KEY,
  product_name      varchar(40) NOT NULL,
  supplier_id       smallint REFERENCES suppliers,
  category_id       smallint REFERENCES categories,
  quantity_per_unit varchar(20),
  unit_price        real,
  units_in_stock    smallint,
  units_on_order    smallint,
  reorder_level     smallint,
  discontinued      integer NOT NULL
);

CREATE TABLE region (
  region_id          smallint PRIMARY KEY,
  region_description bpchar NOT NULL
);

CREATE TABLE territories (
  territory_id          varchar(20) PRIMARY KEY,
  territory_description bpchar NOT NULL,
  region_id             smallint NOT NULL REFERENCES region
);

CREATE TABLE employees (
  employee_id       smallint PRIMARY KEY,
  last_name         varchar(20) NOT NULL,
  first_name        varchar(10) NOT NULL,
  title             varchar(30),
  title_of_courtesy varchar(25),
  birth_date        date,
  hire_date         date,
  address           varchar(60),
  city              varchar(15),
  region            varchar(15),
  postal_code       varchar(10),
  country           varchar(15),
  home_phone        varchar(24),
  extension         varchar(4),
  photo             bytea,
  notes             text,
  reports_to        smallint REFERENCES employees,
  photo_path        varchar(255)
);

CREATE TABLE employee_territories (
  employee_id  smallint REFERENCES employees,
  territory_id varchar(20) REFERENCES territories,
  PRIMARY KEY (employee_id, territory_id)
);

CREATE TABLE customers (
  customer_id   bpchar PRIMARY KEY,
  company_name  varchar(40) NOT NULL,
  contact_name  varchar(30),
  contact_title varchar(30),
  address       varchar(60),
  city          varchar(15),
  region        varchar(15),
  postal_code   varchar(10),
  country       varchar(15),
  phone         varchar(24),
  fax           varchar(24)
);

CREATE TABLE shippers (
  shipper_id   smallint PRIMARY KEY,
  company_name varchar(40) NOT NULL,
  phone        varchar(24)
);

CREATE TABLE orders (
  order_id         smallint PRIMARY KEY,
  customer_id      bpchar REFERENCES customers,
  employee_id      smallint REFERENCES employees,
  order_date       date,
  required_date    date,
  shipped_date     date,
  ship_via         smallint REFERENCES shippers,
  freight          real,
  ship_name        varchar(40),
  ship_address     varchar(60),
  ship_city        varchar(15),
  ship_region      varchar(15),
  ship_postal_code varchar(10),
  ship_country     varchar(15)
);

CREATE TABLE order_details (
  order_id   smallint REFERENCES orders,
  product_id smallint REFERENCES products,
  unit_price real NOT NULL,
  quantity   smallint NOT NULL,
  discount   real NOT NULL,
  PRIMARY KEY (order_id, product_id)
);
