-- Creates or replaces an API key. A revocation stays, the last use never moves
-- back.
--
-- KEYS  the key
-- ARGV  1 id, 2 hash, 3 name, 4 plan, then in Unix milliseconds, 0 for never:
--       5 created, 6 expires, 7 last used, 8 revoked
local key = KEYS[1]
redis.call('HSET', key, 'id', ARGV[1], 'hash', ARGV[2], 'name', ARGV[3], 'plan', ARGV[4],
  'created_at', ARGV[5], 'expires_at', ARGV[6])
if tonumber(ARGV[7]) > tonumber(redis.call('HGET', key, 'last_used_at') or '0') then
  redis.call('HSET', key, 'last_used_at', ARGV[7])
end
if ARGV[8] ~= '0' then
  redis.call('HSETNX', key, 'revoked_at', ARGV[8])
end
return 1
