-- Writes a receipt, with its share of the statistics and, for a turn, the
-- session's next state: all or nothing, because Redis runs a script alone.
--
-- KEYS  receipts stream, receipt, session, counters of the session, statistics, turn,
--       summaries stream; for a turn also the family, then the session's aliases
-- ARGV  1 id, 2 kind, 3 session key, 4 session id, 5 turn, 6 timestamp,
--       7 intervened (0 or 1), 8 m_after, 9 record, 10 margin in whole units,
--       11 excluded (0 or 1), 12 turn id or "", 13 summary or ""; for a turn also
--       14 version that was read, 15 next state, 16 lifetime in seconds, 17 name of the
--       family, 18 whether the family must be there (0 or 1)
-- Returns 1 when the receipt is there, 0 when the session has another version or its
-- family was erased.
local receipts, receipt, session, counters, stats = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local is_turn = #ARGV > 13

-- The id comes before the version: see the package's documentation.
if redis.call('EXISTS', receipt) == 1 then
  return 1
end
if is_turn and (redis.call('HGET', session, 'version') or '0') ~= ARGV[14] then
  return 0
end
if is_turn and ARGV[18] == '1' and redis.call('EXISTS', KEYS[8]) == 0 then
  return 0
end

local at = redis.call('XADD', receipts, '*',
  'id', ARGV[1], 'kind', ARGV[2], 'session_key', ARGV[3], 'session', ARGV[4], 'turn', ARGV[5],
  'ts', ARGV[6], 'turn_id', ARGV[12], 'intervened', ARGV[7], 'm_after', ARGV[8], 'json', ARGV[9])
-- The same place in both streams: it is the listing's cursor, and by it
-- summaries.lua finds the receipts that have no summary.
if ARGV[13] ~= '' then redis.call('XADD', KEYS[7], at, 'id', ARGV[1], 'json', ARGV[13]) end
redis.call('SET', receipt, at)
if ARGV[12] ~= '' then redis.call('SET', KEYS[6], at) end

if is_turn then
  -- One counter for all sessions: no version ever comes again, not even for a
  -- session that was erased and began anew. Lua's own conversion of numbers
  -- would round large ones.
  local version = string.format('%.0f', redis.call('HINCRBY', stats, 'version', 1))
  redis.call('HDEL', session, 'alias_of') -- a session of its own wins over an alias
  redis.call('HSET', session, 'version', version, 'state', ARGV[15], 'family', ARGV[17])
  redis.call('EXPIRE', session, ARGV[16])
  redis.call('SADD', KEYS[8], session)
  for i = 9, #KEYS do
    if redis.call('HEXISTS', KEYS[i], 'version') == 0 then
      redis.call('HSET', KEYS[i], 'alias_of', ARGV[3], 'family', ARGV[17])
      redis.call('EXPIRE', KEYS[i], ARGV[16])
      redis.call('SADD', KEYS[8], KEYS[i])
    end
  end
  redis.call('EXPIRE', KEYS[8], ARGV[16])
end

-- Sums stay strings: a number in Lua has 53 bits, a sum in Redis has 64.
local function add(key, count, interventions, margin)
  redis.call('HINCRBY', key, 'receipts', count)
  redis.call('HINCRBY', key, 'interventions', interventions)
  redis.call('HINCRBY', key, 'margin', margin)
end

local function negative(n)
  if not n or n == '0' then return '0' end
  if string.sub(n, 1, 1) == '-' then return string.sub(n, 2) end
  return '-' .. n
end

local excluded, has_session = ARGV[11] == '1', ARGV[3] ~= ''
if not has_session then
  if not excluded then add(stats, 1, ARGV[7], ARGV[10]) end
  return 1
end
if redis.call('HEXISTS', counters, 'out') == 1 then
  return 1
end
if not excluded then
  add(stats, 1, ARGV[7], ARGV[10])
  add(counters, 1, ARGV[7], ARGV[10])
  return 1
end
local own = redis.call('HMGET', counters, 'receipts', 'interventions', 'margin')
add(stats, negative(own[1]), negative(own[2]), negative(own[3]))
redis.call('DEL', counters)
redis.call('HSET', counters, 'out', 1)
return 1
