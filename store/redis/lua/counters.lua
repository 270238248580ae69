-- Stands before the scripts about counters. A counter is a hash: sum, until.
-- The sum stays a string here, since it may be any int64.

local function read_counter(key)
  local fields = check('counter', 'HMGET', key, 'sum', 'until')
  if not fields[1] then
    return '0'
  end
  if tonumber(fields[2]) <= now then
    redis.call('DEL', key)
    return '0'
  end
  return fields[1]
end
