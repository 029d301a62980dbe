-- Counts one request of a subject, if its window has room.
--
-- A request that may be refunded has a name and a mark. The mark says in which window it was
-- counted, by the name of the first such request there, and is empty since it was refunded.
--
-- KEYS  1 the subject's window: a count that expires with it; where the request has a name
--       also 2 the mark, 3 the first of the window, which expires with it
-- ARGV  1 limit, 2 length of the window in milliseconds; where the request has a name also
--       3 the longest life of a mark in milliseconds, 4 the name
-- Returns whether it was counted (0 or 1), how many more there may be, and the
-- milliseconds until the window ends.
local limit, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local window, mark, first = KEYS[1], KEYS[2], KEYS[3]
local left = redis.call('PTTL', window)
local begins = left <= 0
local used = 0
if begins then
  left = length
else
  used = tonumber(redis.call('GET', window))
end
local before, opener = mark and redis.call('GET', mark), mark and not begins and redis.call('GET', first)
-- A window with more left than its length began under a longer one, or while the server's
-- clock was ahead. Its requests may be of just now, so they go on to count, for one length at
-- most: to begin anew would allow as many again.
if left > length then
  left = length
  redis.call('SET', window, used, 'PX', left)
  if opener then redis.call('SET', first, opener, 'PX', left) end
end
if before then
  return {before == '' and 0 or 1, math.max(0, limit - used), left}
end
if used >= limit then
  return {0, 0, left}
end
if begins then
  redis.call('SET', window, 1, 'PX', left)
else
  redis.call('INCR', window)
end
if mark then
  if not opener then
    opener = ARGV[4]
    redis.call('SET', first, opener, 'PX', left)
  end
  redis.call('SET', mark, opener, 'PX', math.min(left, tonumber(ARGV[3])))
end
return {1, limit - used - 1, left}
