-- Writes receipts, with their shares of the statistics and, for a turn, the session's
-- next state: all or nothing.
--
-- Redis runs a script alone, but it keeps what a script has written that then fails. So
-- what may fail is found before the first write: a key of another type here, a command
-- that the user may not run in check.lua. And the receipts' places, by which a repetition
-- knows that all of it is there, are written last: should a commit end half-way after all,
-- its repetition is no success.
--
-- KEYS  1 receipts stream, 2 summaries stream, 3 statistics, 4 log, 5 head of the log;
--       for each receipt: its place, its turn, the counters of its session or conversation;
--       for a turn also the session, the family, then the session's aliases
-- ARGV  1 how many receipts;
--       for each receipt: id, kind, session key, session id, turn, timestamp,
--       intervened (0 or 1), m_after, record, margin in whole units, excluded (0 or 1),
--       turn id or "", summary or "", SHA-256 of the record, counter of its level or "";
--       for a turn also its session's key, version that was read, next state, lifetime in
--       seconds, name of the family, whether the family must be there (0 or 1), a random
--       number by which the counter of versions grows
-- Returns 1 when the receipts are there, 0 when the session has another version or its
-- family was erased.
local receipts, summaries, stats, log, head = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local count = tonumber(ARGV[1])
local key, arg = 5 + 3 * count, 1 + 15 * count -- where those of a turn begin
local is_turn = #KEYS > key

-- Returns the error of a key of another type than it should have, or nil. It leaves out
-- the session and the head of the log: they are read first, and that fails by itself.
local function wrong_type()
  local function wrong(name, kind)
    local is = redis.call('TYPE', name).ok
    return is ~= kind and is ~= 'none'
  end
  local found = wrong(stats, 'hash') or wrong(receipts, 'stream') or wrong(summaries, 'stream') or wrong(log, 'stream')
  for i = 1, count do found = found or wrong(KEYS[5 + 3 * i], 'hash') end
  if is_turn then found = found or wrong(KEYS[key + 2], 'set') end
  for i = key + 3, #KEYS do found = found or wrong(KEYS[i], 'hash') end
  if found then return redis.error_reply('WRONGTYPE of a key of a commit') end
end

-- Returns the error of a log that has more receipts than its head says, or nil: the head was
-- lost, or is older, and would have numbers taken a second time. If the log was lost with it, the
-- receipts are still there, and would be in no log.
local function behind(size)
  local newest = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
  local more = newest and tonumber(string.match(newest[1], '%d+')) > size
  if more or size == 0 and redis.call('XREVRANGE', receipts, '+', '-', 'COUNT', 1)[1] then
    return redis.error_reply('HEADLOST of the log')
  end
end

-- Sums stay strings: a number in Lua has 53 bits, a sum in Redis has 64.
-- Returns how many turns the level has.
local function add(counters, interventions, margin, level)
  redis.call('HINCRBY', counters, 'receipts', 1)
  redis.call('HINCRBY', counters, 'interventions', interventions)
  redis.call('HINCRBY', counters, 'margin', margin)
  if level == '' then return 0 end
  return redis.call('HINCRBY', counters, level, 1)
end

local function negative(n)
  if n == '0' then return '0' end
  if string.sub(n, 1, 1) == '-' then return string.sub(n, 2) end
  return '-' .. n
end

-- Adds a receipt to its session and to the sum, or takes the session out of the sum.
local function tally(counters, has_session, excluded, interventions, margin, level, timestamp)
  if has_session and redis.call('HEXISTS', counters, 'out') == 1 then
    return
  end
  if not excluded then
    if add(stats, interventions, margin, level) == 1 then
      redis.call('HSETNX', stats, 'levels_since', timestamp) -- it may be the first of all
    end
    if has_session then add(counters, interventions, margin, level) end
    return
  end
  if not has_session then
    return
  end
  local own = redis.call('HGETALL', counters)
  for i = 1, #own, 2 do
    redis.call('HINCRBY', stats, own[i], negative(own[i + 1]))
  end
  redis.call('DEL', counters)
  redis.call('HSET', counters, 'out', 1)
end

-- Lua's own conversion of numbers would round large ones.
local function text(n) return string.format('%.0f', n) end

-- The log so far: how many receipts it has, and the SHA-256 of the last one's record.
local size, last = unpack(redis.call('HMGET', head, 'size', 'sha256'))
size, last = tonumber(size or 0), last or ''

-- The places of the receipts that this script writes, by their keys.
local places = {}

-- Writes the i-th receipt at the end of the log, unless it is there.
local function write(i)
  local place, turn, counters = KEYS[3 + 3 * i], KEYS[4 + 3 * i], KEYS[5 + 3 * i]
  local a = 15 * i - 14 -- its arguments follow this one
  if places[place] or redis.call('EXISTS', place) == 1 then
    return
  end
  size = size + 1
  local seq = text(size)
  local at = redis.call('XADD', receipts, '*',
    'id', ARGV[a + 1], 'kind', ARGV[a + 2], 'session_key', ARGV[a + 3], 'session', ARGV[a + 4], 'turn', ARGV[a + 5],
    'ts', ARGV[a + 6], 'turn_id', ARGV[a + 12], 'intervened', ARGV[a + 7], 'm_after', ARGV[a + 8], 'json', ARGV[a + 9],
    'seq', seq, 'log_prev', last)
  last = ARGV[a + 14]
  redis.call('HSET', head, 'size', seq, 'sha256', last)
  redis.call('XADD', log, seq .. '-0', 'at', at) -- takes each number once, so the head has it by now
  -- The same place in both streams: it is the listing's cursor, and by it
  -- summaries.lua finds the receipts that have no summary.
  if ARGV[a + 13] ~= '' then redis.call('XADD', summaries, at, 'id', ARGV[a + 1], 'json', ARGV[a + 13]) end
  places[place] = at
  -- A turn's id leads to the turn's own receipt before those of its tool calls.
  if ARGV[a + 12] ~= '' then
    redis.call(ARGV[a + 2] == 'TCR' and 'SETNX' or 'SET', turn, at)
  end
  tally(counters, ARGV[a + 3] ~= '', ARGV[a + 11] == '1', ARGV[a + 7], ARGV[a + 10], ARGV[a + 15], ARGV[a + 6])
end

-- The id comes before the version: see the package's documentation.
if is_turn then
  if redis.call('EXISTS', KEYS[6]) == 1 then
    return 1
  end
  if (redis.call('HGET', KEYS[key + 1], 'version') or '0') ~= ARGV[arg + 2] then
    return 0
  end
  if ARGV[arg + 6] == '1' and redis.call('EXISTS', KEYS[key + 2]) == 0 then
    return 0
  end
end

local refused = wrong_type() or behind(size)
if refused then return refused end

-- What does no harm by itself comes first, should the user have lost a right.
local version
if is_turn then
  local session, family, lifetime = KEYS[key + 1], KEYS[key + 2], ARGV[arg + 4]
  -- One counter for all sessions: no version ever comes again, not even for a session that
  -- was erased and began anew. Where a replica has taken over that was behind, the counter
  -- goes back. It grows by random steps, so that a version that was read before does not come up
  -- again: the turn that was computed from it would be taken for the next one.
  redis.call('HINCRBY', stats, 'version', ARGV[arg + 7])
  version = redis.call('HGET', stats, 'version')
  redis.call('SADD', family, session)
  redis.call('EXPIRE', family, lifetime)
end

for i = 1, count do write(i) end

if is_turn then
  local session, family = KEYS[key + 1], KEYS[key + 2]
  local state, lifetime, family_name = ARGV[arg + 3], ARGV[arg + 4], ARGV[arg + 5]
  for i = key + 3, #KEYS do
    if redis.call('HEXISTS', KEYS[i], 'version') == 0 then
      redis.call('HSET', KEYS[i], 'alias_of', ARGV[arg + 1], 'family', family_name)
      redis.call('EXPIRE', KEYS[i], lifetime)
      redis.call('SADD', family, KEYS[i])
    end
  end
  redis.call('HDEL', session, 'alias_of') -- a session of its own wins over an alias
  redis.call('HSET', session, 'version', version, 'state', state, 'family', family_name)
  redis.call('EXPIRE', session, lifetime)
end

for place, at in pairs(places) do redis.call('SET', place, at) end
return 1
