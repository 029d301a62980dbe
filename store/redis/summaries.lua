-- Lists receipts, newest first, by their summaries.
--
-- A receipt without a summary was written before there were summaries, or by a
-- replica that does not make them yet, so there may be one between any two
-- summaries: the range between their places is empty unless there is. Such a
-- receipt is read whole, and ends the list, so that no more than one is read
-- while everybody else waits. Its caller asks again for what follows.
--
-- KEYS  receipts stream, summaries stream
-- ARGV  1 where to begin: + or a place, with ( before it when it is not wanted,
--       2 how many at most
-- Returns place, id and summary, "" without one, of each in one list, which is
-- empty when there is no receipt.
local receipts, summaries = KEYS[1], KEYS[2]

local function newest(stream, from, to)
  return redis.call('XREVRANGE', stream, from, to, 'COUNT', 1)[1]
end

-- The value of a field of an entry, whose fields and values take turns.
local function value(entry, name)
  for i = 1, #entry[2], 2 do
    if entry[2][i] == name then return entry[2][i + 1] end
  end
  return ''
end

local list, from = {}, ARGV[1]
for _ = 1, tonumber(ARGV[2]) do
  local summary = newest(summaries, from, '-')
  local bare = newest(receipts, from, summary and '(' .. summary[1] or '-')
  local entry = bare or summary
  if not entry then break end
  list[#list + 1] = entry[1]
  list[#list + 1] = value(entry, 'id')
  list[#list + 1] = bare and '' or value(entry, 'json')
  if bare then break end
  from = '(' .. entry[1]
end
return list
