-- Takes one request out of the window that it was counted in, whose end does not move.
--
-- Without a mark the request was not counted, or long ago. It gets one, so that it is not
-- counted when it comes yet.
--
-- KEYS  1 the subject's window, 2 the mark of the request, 3 the first of the window, see
--       consume.lua
-- ARGV  1 the life of the mark from now on, in milliseconds
local mark = redis.call('GET', KEYS[2])
if mark == '' then return 1 end
redis.call('SET', KEYS[2], '', 'PX', ARGV[1])
if mark and mark == redis.call('GET', KEYS[3]) and tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then
  redis.call('DECR', KEYS[1])
end
return 1
