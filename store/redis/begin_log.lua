-- Puts receipts that were written before there was a log into it, oldest first, and sets
-- its head when all of them are there. It runs alone, so it numbers each of them once.
--
-- KEYS  receipts stream, log, head of the log
-- ARGV  how many at most, because everybody else waits
-- Returns 1 when there are more.
local receipts, log, head = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', head) == 1 then return 0 end
local seq, from = 0, '-'
local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
if last then seq, from = tonumber(string.match(last[1], '%d+')), '(' .. last[2][2] end
local entries = redis.call('XRANGE', receipts, from, '+', 'COUNT', ARGV[1])
for _, entry in ipairs(entries) do
  seq = seq + 1
  redis.call('XADD', log, string.format('%.0f-0', seq), 'at', entry[1])
end
if #entries > 0 then return 1 end
-- Redis computes no SHA-256: the receipt that comes next has no link.
if seq > 0 then redis.call('HSET', head, 'size', string.format('%.0f', seq)) end
return 0
