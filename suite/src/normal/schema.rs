//! The table's definition and its fixed numbers.

/// Countries: `country_id` is 1 to this.
pub const COUNTRIES: u16 = 200;

/// States of each country: `state_id` is 1 to this.
pub const STATES: u8 = 50;

/// The table's name in each engine's schema.
pub const TABLE: &str = "normal";

/// The statement that creates the table in the current schema.
#[must_use]
pub fn create_table(engine: &str) -> String {
    format!(
        "CREATE TABLE {TABLE} (\
         id int unsigned not null auto_increment primary key, \
         name varchar(64) not null default '', \
         email varchar(64) not null default '', \
         password varchar(64) not null default '', \
         dob date default null, \
         address varchar(128) not null default '', \
         city varchar(64) not null default '', \
         state_id tinyint unsigned not null default 0, \
         zip varchar(8) not null default '', \
         country_id smallint unsigned not null default 0, \
         unique key email (email), \
         key country_id (country_id, state_id, city)\
         ) ENGINE={engine}"
    )
}
