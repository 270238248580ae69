-- KEYS: the counter, the addition. ARGV: delta, a counter's life, how long the
-- addition is remembered. Replies {1, sum}, or {0, ''} where it would overflow.
local sum = read_counter(KEYS[1])
local known = check('addition', 'GET', KEYS[2])
if known and now < tonumber(known) then
  return { 1, sum }
end
local added = redis.pcall('HINCRBY', KEYS[1], 'sum', ARGV[1])
if type(added) == 'table' then
  if string.find(added.err, 'overflow', 1, true) then
    return { 0, '' }
  end
  error(added)
end
local ends = after(now, tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'until', text(ends))
expire(KEYS[1], ends)
local forgotten = after(now, tonumber(ARGV[3]))
redis.call('SET', KEYS[2], text(forgotten), 'PX', text(forgotten - now + GRACE))
return { 1, redis.call('HGET', KEYS[1], 'sum') }
