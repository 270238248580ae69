-- KEYS: the operation, the owner's buckets, then of each lease its set.
-- ARGV: how long a decision is remembered, how many items, the items.
-- Replies {kind, item, wait, balance}.

local NOW, LATER, REFUSED, NEVER = 1, 2, 3, 4

local known = check('operation', 'HGET', KEYS[1], 'd')
if known then
  local kind, item, wait, balance, ends = string.match(known, '^(%d) (%d+) (%d+) (-?%d+) (%d+)$')
  if not kind then
    fail('operation', 'what it holds is no decision')
  end
  if now < tonumber(ends) then
    return { tonumber(kind), tonumber(item), tonumber(wait), tonumber(balance) }
  end
end

local next_arg = 1
local function arg()
  next_arg = next_arg + 1
  return ARGV[next_arg]
end
local function number()
  return tonumber(arg())
end

local next_key = 2
local function key_of_leases()
  next_key = next_key + 1
  return KEYS[next_key]
end

local remembered = tonumber(ARGV[1])
local remember_until = after(now, remembered)
local operation = {} -- fields of reservations
local operation_ends = remember_until

-- judge is how a take goes, whether or not it is charged.
local function judge(bucket, level, cost, max_wait)
  if wait_for(bucket, full(bucket, level.stamp), cost) > max_wait then
    return NEVER, 0
  end
  local wait = wait_for(bucket, level, cost)
  local too_long = math.max(wait - max_wait, wait_for(bucket, level, cost - MAX_UNITS))
  if too_long > 0 then
    return REFUSED, math.min(too_long, LONGEST)
  end
  if wait > 0 then
    return LATER, wait
  end
  return NOW, 0
end

-- Each kind of item gives its outcome: kind, wait, balance, and what to write
-- if all items are granted.
local items = {}

function items.take()
  local limit, bucket = arg(), { n = number(), p = number(), burst = number() }
  local cost, max_wait, reserve = number(), number(), number()
  local level = read_level(KEYS[2], limit, bucket)
  local kind, wait = judge(bucket, level, cost, max_wait)
  if kind > LATER then
    return kind, wait, level.units
  end
  level.units = level.units - cost
  return kind, wait, level.units, function()
    if cost > 0 then
      write_level(KEYS[2], limit, bucket, level)
    end
    if reserve > 0 then
      local ends = after(now, reserve)
      operation[#operation + 1] = 'r:' .. limit
      operation[#operation + 1] = text(cost) .. ' ' .. text(ends)
      operation_ends = math.max(operation_ends, ends)
    end
  end
end

function items.room()
  local limit, bucket = arg(), { n = number(), p = number(), burst = number() }
  local cost = number()
  local level = read_level(KEYS[2], limit, bucket)
  local kind, wait = judge(bucket, level, cost, 0)
  if kind == NOW then
    level.units = level.units - cost
  end
  return kind, wait, level.units
end

function items.lease()
  local key, most, lasts, member = key_of_leases(), number(), number(), arg()
  live(key)
  local held = redis.call('ZCARD', key)
  local over = held - most
  if over >= 0 and not redis.call('ZSCORE', key, member) then
    local lapses = redis.call('ZRANGE', key, text(over), text(over), 'WITHSCORES')
    return REFUSED, math.min(tonumber(lapses[2]) - now, LONGEST), 0
  end
  return NOW, 0, 0, function()
    local ends = after(now, lasts)
    redis.call('ZADD', key, text(ends), member)
    prolong(key, ends, held == 0)
  end
end

-- The worst outcome decides, of equal ones the longest wait, then the first.
local kind, item, wait, balance = NOW, 0, 0, 0
local writes = {}
for i = 0, number() - 1 do
  local what = arg()
  local its_kind, its_wait, its_balance, write = items[what]()
  if what == 'take' and kind == NOW then
    balance = its_balance
  end
  if its_kind > kind or its_kind == kind and its_wait > wait then
    kind, item, wait, balance = its_kind, i, its_wait, its_balance
  end
  writes[#writes + 1] = write
end
if kind <= LATER then
  for _, write in ipairs(writes) do
    write()
  end
end

local decision = string.format('%d %d %d %d %d', kind, item, wait, balance, remember_until)
redis.call('HSET', KEYS[1], 'd', decision, unpack(operation))
prolong(KEYS[1], operation_ends, not known) -- for perhaps a reservation is still open
return { kind, item, wait, balance }
