-- Publishes the rows of benchmarks, all or none: only the first write can fail.
--
-- KEYS  rows stream
-- ARGV  the rows
for _, row in ipairs(ARGV) do redis.call('XADD', KEYS[1], '*', 'json', row) end
return 1
