-- Stands before the scripts about claims.
-- A claim is a hash: token, state (held, given or done), until, and the holder
-- or the result.

local function read_claim(key)
  local fields = check('claim', 'HMGET', key, 'token', 'state', 'until', 'holder', 'result')
  if not fields[1] then
    return nil
  end
  if tonumber(fields[3]) <= now then
    redis.call('DEL', key)
    return nil
  end
  return { token = fields[1], state = fields[2], holder = fields[4] or '', result = fields[5] or '' }
end

local function write_claim(key, lasts, ...)
  local ends = after(now, tonumber(lasts))
  redis.call('HSET', key, 'until', text(ends), ...)
  expire(key, ends)
end
