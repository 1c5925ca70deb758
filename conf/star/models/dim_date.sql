SELECT
  CAST(date_format(day, 'yyyyMMdd') AS INT) AS date_key,
  day                                       AS full_date,
  year(day)                                 AS year,
  quarter(day)                              AS quarter,
  month(day)                                AS month,
  date_format(day, 'MMMM')                  AS month_name,
  CAST(extract(YEAROFWEEK FROM day) AS INT) AS iso_year,
  weekofyear(day)                           AS iso_week,
  weekday(day) + 1                          AS iso_weekday,
  weekday(day) >= 5                         AS is_weekend,
  day = last_day(day)                       AS is_month_end
FROM (SELECT explode(sequence(DATE '2003-01-01', DATE '2006-12-31')) AS day)
