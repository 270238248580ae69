-- KEYS: the operation, the owner's buckets.
-- ARGV: limit, n, p, burst, actual, how long it is remembered.
-- Replies {1, balance}, or {0, 0} of what is not open.

local field = 'r:' .. ARGV[1]
local bucket = { n = tonumber(ARGV[2]), p = tonumber(ARGV[3]), burst = tonumber(ARGV[4]) }
local actual, remembered = tonumber(ARGV[5]), tonumber(ARGV[6])

local open = check('operation', 'HGET', KEYS[1], field)
if not open then
  return { 0, 0 }
end
local charged, ends = string.match(open, '^(%l*%d*) (%d+)$')
if not charged then
  fail('operation', 'what it holds is no reservation')
end
if tonumber(ends) <= now then
  redis.call('HDEL', KEYS[1], field)
  return { 0, 0 }
end

local level = read_level(KEYS[2], ARGV[1], bucket)
if charged ~= 'settled' then
  level.units = level.units + tonumber(charged) - actual
  if level.units >= bucket.burst then
    level.units, level.rest = bucket.burst, 0
  end
  if level.units < -MAX_UNITS then
    level.units, level.rest = -MAX_UNITS, 0
  end
  write_level(KEYS[2], ARGV[1], bucket, level)
  redis.call('HSET', KEYS[1], field, 'settled ' .. text(after(now, remembered)))
  local last = 0
  for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
    last = math.max(last, tonumber(string.match(value, '%d+$')))
  end
  expire(KEYS[1], last)
end
return { 1, level.units }
