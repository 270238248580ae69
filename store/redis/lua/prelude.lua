-- Stands before every script: the time, reading with a clear error, and the
-- arithmetic of buckets. All numbers are integers below 2^53, where doubles
-- are exact; whatever could leave that range is compared before it is made.

local time = redis.call('TIME')
local seconds, micros = tonumber(time[1]), tonumber(time[2])
local now = seconds * 1000 + math.floor(micros / 1000)

local LARGEST = 2 ^ 53
local LONGEST = 9223372036854 -- milliseconds; no wait is reported longer
local MAX_UNITS = 1e15
local GRACE = 60000 -- that Redis keeps a key beyond its end, by which the scripts go

local function fail(kind, what)
  error({ err = 'HOOKHOST ' .. kind .. ': ' .. what })
end

-- check calls a command and says on what kind of key it failed, if that is of
-- another type.
local function check(kind, ...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, '^WRONGTYPE') then
      fail(kind, reply.err)
    end
    error(reply)
  end
  return reply
end

-- text is how a number is given to Redis, whose own way is slower.
local function text(n)
  return string.format('%d', n)
end

-- after is a time so many milliseconds after another, or the end of time.
local function after(t, ms)
  return math.min(t + ms, LARGEST)
end

-- expire lets Redis forget a key when what it holds has ended.
local function expire(key, ends)
  redis.call('PEXPIRE', key, text(math.max(ends - now, 0) + GRACE))
end

-- prolong does so unless something else in the key ends later. A fresh key has
-- nothing else.
local function prolong(key, ends, fresh)
  if fresh then
    expire(key, ends)
  else
    redis.call('PEXPIRE', key, text(math.max(ends - now, 0) + GRACE), 'GT')
  end
end

-- divide is exact: the quotient and the rest of numbers that are not negative.
local function divide(a, b)
  local rest = math.fmod(a, b)
  return (a - rest) / b, rest
end

-- scale is rest * to / from, floored, for 0 <= rest < from: bit by bit, since
-- the product would not fit.
local function scale(rest, to, from)
  local quotient, left, bit = 0, 0, LARGEST
  while bit >= 1 do
    quotient = quotient * 2
    if left >= from - left then
      left, quotient = left - (from - left), quotient + 1
    else
      left = left + left
    end
    if to >= bit then
      to = to - bit
      if left >= from - rest then
        left, quotient = left - (from - rest), quotient + 1
      else
        left = left + rest
      end
    end
    bit = bit / 2
  end
  return quotient
end

-- A bucket is {n, p, burst}: n units every p milliseconds. Its level is
-- {units, rest, stamp}: units + rest/p at stamp, 0 <= rest < p.

local function full(bucket, stamp)
  return { units = bucket.burst, rest = 0, stamp = stamp }
end

-- wait_for is how long after its stamp a level reaches so many units.
local function wait_for(bucket, level, units)
  if units <= level.units then
    return 0
  end
  local whole, part = divide(units - level.units, bucket.n)
  local missing = part * bucket.p - level.rest
  local wait = whole * bucket.p
  if missing > 0 then
    local more, left = divide(missing, bucket.n)
    wait = wait + more + (left > 0 and 1 or 0)
  else
    wait = wait - divide(-missing, bucket.n)
  end
  return math.min(wait, LARGEST)
end

-- refill brings a level to now.
local function refill(bucket, level, per)
  if per ~= bucket.p and level.rest > 0 then
    level.rest = scale(level.rest, bucket.p, per)
  end
  local elapsed = 0
  if now > level.stamp then
    elapsed, level.stamp = now - level.stamp, now
  end
  local missing = bucket.burst - level.units
  if missing <= 0 then
    return full(bucket, level.stamp)
  end
  local periods, part = divide(elapsed, bucket.p)
  local back = periods * bucket.n
  if back >= missing then
    return full(bucket, level.stamp)
  end
  local units, rest = divide(part * bucket.n, bucket.p)
  if level.rest >= bucket.p - rest then
    units, rest = units + 1, rest - (bucket.p - level.rest)
  else
    rest = rest + level.rest
  end
  back = back + units
  if back >= missing then
    return full(bucket, level.stamp)
  end
  level.units, level.rest = level.units + back, rest
  return level
end

-- read_level is what one of an owner's buckets holds now. One that was full is
-- forgotten.
local function read_level(key, limit, bucket)
  local state = check('bucket', 'HGET', key, limit)
  if not state then
    return full(bucket, now)
  end
  local units, rest, per, stamp, ends = string.match(state, '^(-?%d+) (%d+) (%d+) (-?%d+) (-?%d+)$')
  if not units then
    fail('bucket', 'what it holds is no level')
  end
  if tonumber(ends) <= now then
    redis.call('HDEL', key, limit)
    return full(bucket, now)
  end
  local level = { units = tonumber(units), rest = tonumber(rest), stamp = tonumber(stamp) }
  return refill(bucket, level, tonumber(per))
end

-- write_level keeps a level until it would be full.
local function write_level(key, limit, bucket, level)
  local wait = wait_for(bucket, level, bucket.burst)
  if wait == 0 then
    redis.call('HDEL', key, limit)
    return
  end
  local ends = after(level.stamp, wait)
  local state = string.format('%d %d %d %d %d', level.units, level.rest, bucket.p, level.stamp, ends)
  local fresh = redis.call('HSET', key, limit, state) == 1 and redis.call('HLEN', key) == 1
  prolong(key, ends, fresh)
end

-- live drops the leases that lapsed.
local function live(key)
  check('lease set', 'ZREMRANGEBYSCORE', key, '-inf', text(now))
end
