-- KEYS: the operation, then of each sample its average.
-- ARGV: how long the operation is remembered, an average's life, then of each
-- sample its calls and units. Replies the means.

local OVER = 100 -- store.AverageOver

local known = check('operation', 'GET', KEYS[1])
if known then
  local means = {}
  for n in string.gmatch(known, '%d+') do
    means[#means + 1] = tonumber(n)
  end
  if now < table.remove(means, 1) then
    return means
  end
end

-- averages by key, since one may be in several samples.
local averages = {}

local function read_average(key)
  local entry = check('average', 'GET', key)
  local units, calls, ends = 0, 0, 0
  if entry then
    units, calls, ends = string.match(entry, '^(%d+) (%d+) (%d+)$')
    if not units then
      fail('average', 'what it holds is none')
    end
    if tonumber(ends) <= now then
      redis.call('DEL', key)
      units, calls = 0, 0
    end
  end
  return { units = tonumber(units), calls = tonumber(calls) }
end

local function add(average, calls, units)
  average.units, average.calls, average.changed = average.units + units, average.calls + calls, true
  if average.calls > OVER then
    local whole, rest = divide(average.units, average.calls)
    average.units, average.calls = whole * OVER + divide(rest * OVER, average.calls), OVER
  end
end

local function mean(average)
  if average.calls == 0 then
    return 0
  end
  return (divide(average.units + average.calls - 1, average.calls))
end

local means = {}
for i = 2, #KEYS do
  local average = averages[KEYS[i]] or read_average(KEYS[i])
  averages[KEYS[i]] = average
  local calls, units = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  if calls > 0 then
    add(average, calls, units)
  end
  means[#means + 1] = mean(average)
end

local ends = after(now, tonumber(ARGV[2]))
for key, average in pairs(averages) do
  if average.changed then
    redis.call('SET', key, text(average.units) .. ' ' .. text(average.calls) .. ' ' .. text(ends), 'PX', text(ends - now + GRACE))
  end
end
local forgotten = after(now, tonumber(ARGV[1]))
local answer = { text(forgotten) }
for _, n in ipairs(means) do
  answer[#answer + 1] = text(n)
end
redis.call('SET', KEYS[1], table.concat(answer, ' '), 'PX', text(forgotten - now + GRACE))
return means
