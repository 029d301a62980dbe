-- Counts one request of a subject, if its window has room.
--
-- KEYS  the subject's window: a count that expires with it
-- ARGV  1 limit, 2 length of a new window in milliseconds
-- Returns whether it was counted (0 or 1), how many more there may be, and the
-- milliseconds until the window ends.
local limit = tonumber(ARGV[1])
local left = redis.call('PTTL', KEYS[1])
local begins = left <= 0
local used = 0
if begins then
  left = tonumber(ARGV[2])
else
  used = tonumber(redis.call('GET', KEYS[1]))
end
if used >= limit then
  return {0, 0, left}
end
if begins then
  redis.call('SET', KEYS[1], 1, 'PX', left)
else
  redis.call('INCR', KEYS[1])
end
return {1, limit - used - 1, left}
