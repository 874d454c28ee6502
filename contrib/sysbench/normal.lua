#!/usr/bin/env sysbench
-- The thirteen READ_ queries of the workload `normal` (bench/workloads/normal.toml), for sysbench 1.0.20.
--
--   sysbench normal.lua --query=READ_PK_POINT --rows=1000000 --mysql-db=… --threads=4 --time=10 run
--
-- The table is filled by `peregrine bench`, or by this script's own `prepare`; README.md says how.

sysbench.cmdline.options = {
   query = {"Which query: one of the thirteen READ_ queries", "READ_PK_POINT"},
   rows = {"Rows of the table", 1000000},
   countries = {"Countries there are", 200},
   states = {"States of each country", 50},
   id_range = {"How many ids a range covers", 100},
   state_range = {"How many states a range covers", 10},
   protocol = {"text (the whole statement each time) or prepared", "text"},
   engine = {"prepare: the table's engine", "InnoDB"},
}

local rand = sysbench.rand.uniform

-- What parameters are drawn from, all uniformly, as in the workload file.
local function id()
   return rand(1, sysbench.opt.rows)
end

local function country()
   return rand(1, sysbench.opt.countries)
end

local function ids()
   local rows, wide = sysbench.opt.rows, sysbench.opt.id_range
   local first = rand(1, math.max(rows - wide + 1, 1))
   return first, math.min(first + wide - 1, rows)
end

local function states()
   local wide = sysbench.opt.state_range
   local from = country()
   local first = rand(1, sysbench.opt.states - wide + 1)
   return from, first, first + wide - 1
end

local function nothing()
end

local in_country = "FROM normal WHERE country_id = ?"
local in_states = in_country .. " AND state_id BETWEEN ? AND ?"

-- Each query: its statement, its number of parameters, and what draws them.
local queries = {
   READ_PK_POINT = {"SELECT name FROM normal WHERE id = ?", 1, id},
   READ_KEY_POINT = {"SELECT name " .. in_country, 1, country},
   READ_KEY_POINT_LIMIT = {"SELECT name " .. in_country .. " LIMIT 5", 1, country},
   READ_KEY_POINT_NO_DATA = {"SELECT state_id " .. in_country, 1, country},
   READ_KEY_POINT_NO_DATA_LIMIT = {"SELECT state_id " .. in_country .. " LIMIT 5", 1, country},
   READ_PK_POINT_INDEX = {"SELECT id FROM normal WHERE id = ?", 1, id},
   READ_PK_RANGE = {"SELECT min(dob) FROM normal WHERE id BETWEEN ? AND ?", 2, ids},
   READ_PK_RANGE_INDEX = {"SELECT count(id) FROM normal WHERE id BETWEEN ? AND ?", 2, ids},
   READ_KEY_RANGE = {"SELECT name " .. in_states, 3, states},
   READ_KEY_RANGE_LIMIT = {"SELECT name " .. in_states .. " LIMIT 50", 3, states},
   READ_KEY_RANGE_NO_DATA = {"SELECT city " .. in_states, 3, states},
   READ_KEY_RANGE_NO_DATA_LIMIT = {"SELECT city " .. in_states .. " LIMIT 50", 3, states},
   READ_FTS = {"SELECT min(dob) FROM normal", 0, nothing},
}

local connection, ask

-- Sends the whole statement each time.
local function by_text(query)
   local format = query[1]:gsub("%?", "%%d")
   local draw = query[3]
   return function()
      local rows = connection:query(format:format(draw()))
      if rows then
         rows:free()
      end
   end
end

-- Prepares the statement once.
local function by_prepared(query)
   local statement = connection:prepare(query[1])
   local parameters = {}
   for place = 1, query[2] do
      parameters[place] = statement:bind_create(sysbench.sql.type.INT)
   end
   if #parameters > 0 then
      statement:bind_param(unpack(parameters))
   end
   local function set(...)
      for place = 1, #parameters do
         parameters[place]:set((select(place, ...)))
      end
   end
   return function()
      set(query[3]())
      local rows = statement:execute()
      if rows then
         rows:free()
      end
   end
end

function thread_init()
   local query = queries[sysbench.opt.query]
   if not query then
      local known = {}
      for name in pairs(queries) do
         table.insert(known, name)
      end
      table.sort(known)
      error("unknown query '" .. sysbench.opt.query .. "': there are " .. table.concat(known, ", "))
   end
   local way = ({text = by_text, prepared = by_prepared})[sysbench.opt.protocol]
   if not way then
      error("unknown protocol '" .. sysbench.opt.protocol .. "': there are text and prepared")
   end
   connection = sysbench.sql.driver():connect()
   ask = way(query)
end

function thread_done()
   connection:disconnect()
end

function event()
   ask()
end

-- A table of the same columns, indexes and distributions, with words of this script's own: enough to try the
-- queries out, not the rows that `peregrine bench` has and checks its answers against.
function prepare()
   local opt = sysbench.opt
   local connection = sysbench.sql.driver():connect()
   connection:query([[CREATE TABLE normal (
      id int unsigned not null auto_increment,
      name varchar(64) not null default '',
      email varchar(64) not null default '',
      password varchar(64) not null default '',
      dob date default null,
      address varchar(128) not null default '',
      city varchar(64) not null default '',
      state_id tinyint unsigned not null default 0,
      zip varchar(8) not null default '',
      country_id smallint unsigned not null default 0,
      PRIMARY KEY (id),
      UNIQUE KEY email (email),
      KEY country_id (country_id, state_id, city)
   ) ENGINE=]] .. opt.engine)
   local words = sysbench.rand.string
   connection:bulk_insert_init("INSERT INTO normal VALUES")
   for row = 1, opt.rows do
      connection:bulk_insert_next(string.format("(%d, '%s', '%s%d@example.com', '%s', '%04d-%02d-%02d', '%s', '%s', %d, '%05d', %d)",
         row, words("@@@@@@ @@@@@@@@"), words("@@@@@@"), row, words("@@@@@@@@@@@@"), rand(1940, 2004), rand(1, 12),
         rand(1, 28), words("## @@@@@@@@@@ @@@@@@"), words("@@@@@@@@"), rand(1, opt.states), rand(0, 99999), country()))
   end
   connection:bulk_insert_done()
   connection:query("ANALYZE TABLE normal")
   connection:disconnect()
end

function cleanup()
   local connection = sysbench.sql.driver():connect()
   connection:query("DROP TABLE IF EXISTS normal")
   connection:disconnect()
end
