-- KEYS: the lease set, the call, which is answered the same when it comes again.
-- ARGV: the member, how long the call is remembered. Replies {1 if it was held}.
local known = check('call', 'GET', KEYS[2])
if known then
  return { tonumber(known) }
end
live(KEYS[1])
local held = redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], held, 'PX', ARGV[2])
return { held }
