-- Counts one request of a subject, if its window has room.
--
-- KEYS  the subject's window: a count that expires with it
-- ARGV  1 limit, 2 length of the window in milliseconds
-- Returns whether it was counted (0 or 1), how many more there may be, and the
-- milliseconds until the window ends.
local limit, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local left = redis.call('PTTL', KEYS[1])
local begins = left <= 0
local used = 0
if begins then
  left = length
else
  used = tonumber(redis.call('GET', KEYS[1]))
end
-- A window with more left than its length began under a longer one, or while the server's
-- clock was ahead. Its requests may be of just now, so they go on to count, for one length at
-- most: to begin anew would allow as many again.
if left > length then
  left = length
  redis.call('SET', KEYS[1], used, 'PX', left)
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
