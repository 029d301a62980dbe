-- Takes one request out of a subject's window, whose end does not move.
--
-- KEYS  the subject's window
if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then
  redis.call('DECR', KEYS[1])
end
return 1
