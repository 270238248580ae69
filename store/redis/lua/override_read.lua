-- KEYS: overrides by user, users by revision, the revision.
-- ARGV: epoch and count of the revision that the reader knows.
-- Replies {epoch, count, 1 if these are all, user, override, ...}.
local revision = check('revision', 'HMGET', KEYS[3], 'epoch', 'count')
local epoch, count = revision[1] or '', tonumber(revision[2] or '0')
local known = tonumber(ARGV[2])
local whole = epoch ~= ARGV[1] or known > count
local reply = { epoch, count, whole and 1 or 0 }
local users = check('override log', 'ZRANGEBYSCORE', KEYS[2], whole and '-inf' or '(' .. text(known), '+inf')
for _, user in ipairs(users) do
  reply[#reply + 1] = user
  reply[#reply + 1] = redis.call('HGET', KEYS[1], user)
end
return reply
