-- KEYS: the namespace's marker. ARGV: the format of the keys.
-- Replies {the format that the namespace is in}.
local known = check('namespace marker', 'GET', KEYS[1])
if not known then
  redis.call('SET', KEYS[1], ARGV[1])
  known = ARGV[1]
end
return { known }
