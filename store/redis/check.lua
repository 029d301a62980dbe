-- Runs every command that the store uses, on keys that it deletes again, and looks at the
-- types of the keys that all turns share. So a full server, a replica, a user who may not
-- run one of the commands and a key that something else wrote are found before a turn is.
-- The server compares the memory in use with its limit once, before a script runs, and counts
-- the script's arguments: only with a large one does this need as much room as a turn.
--
-- KEYS  1 receipts stream, 2 summaries stream, 3 statistics, 4 log, 5 head of the log;
--       to write to: 6 a stream, 7 a hash, 8 a set, 9 a string
-- ARGV  1 a text that is not read, as large as the room that is asked for
-- Returns what fails and its error, or an empty list.
for i, kind in ipairs({'stream', 'stream', 'hash', 'stream', 'hash'}) do
  local is = redis.pcall('TYPE', KEYS[i])
  if is.err then return {'TYPE', is.err} end
  if is.ok ~= kind and is.ok ~= 'none' then return {KEYS[i], 'WRONGTYPE'} end
end

local stream, hash, set, text = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
for _, command in ipairs({
  {'XADD', stream, '*', 'field', 'value'},
  {'XRANGE', stream, '-', '+', 'COUNT', '1'},
  {'XREVRANGE', stream, '+', '-', 'COUNT', '1'},
  {'HSET', hash, 'field', '1'},
  {'HSETNX', hash, 'field', '1'},
  {'HINCRBY', hash, 'field', '1'},
  {'HEXISTS', hash, 'field'},
  {'HGET', hash, 'field'},
  {'HMGET', hash, 'field'},
  {'HGETALL', hash},
  {'HDEL', hash, 'field'},
  {'SADD', set, 'member'},
  {'SMEMBERS', set},
  {'SET', text, '1', 'PX', '60000'},
  {'SETNX', text, '1'},
  {'GET', text},
  {'INCR', text},
  {'DECR', text},
  {'EXPIRE', text, '60'},
  {'PTTL', text},
  {'EXISTS', text},
  {'DEL', stream, hash, set, text},
}) do
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then return {command[1], reply.err} end
end
return {}
