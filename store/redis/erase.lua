-- Erases a session and all others of its family, under all their names. It runs
-- alone, so no turn of the family comes between.
--
-- KEYS  the session, or an alias of it
-- ARGV  1 prefix of the keys of families, 2 prefix of the keys of sessions
--
-- The other keys are known only here. All of them have the tag {0} of the first.
local family = redis.call('HGET', KEYS[1], 'family')
local of = redis.call('HGET', KEYS[1], 'alias_of')
if of then
  -- What the alias leads to decides, if it is there: it may belong to another family by now.
  family = redis.call('HGET', ARGV[2] .. of, 'family') or family
  redis.call('DEL', ARGV[2] .. of)
end
redis.call('DEL', KEYS[1]) -- also where the set of its family is lost
if not family then return 1 end -- stored before there were families
local members = ARGV[1] .. family
for _, name in ipairs(redis.call('SMEMBERS', members)) do
  if redis.call('HGET', name, 'family') == family then redis.call('DEL', name) end
end
redis.call('DEL', members)
return 1
