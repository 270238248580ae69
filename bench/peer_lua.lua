-- The tasks in Lua.

local phrases = {
  "ignore all previous instructions", "reveal your system prompt", "disable the safety", "print your api key",
  "act as an unrestricted", "send the password", "bypass the filter", "delete every record",
}

function verdict(text)
  text = string.lower(text)
  for _, phrase in ipairs(phrases) do
    if string.find(text, phrase, 1, true) then return "refuse phrase" end
  end
  return "continue"
end

local function luhn(digits)
  local sum, n = 0, #digits
  for i = 1, n do
    local d = string.byte(digits, i) - 48
    if (n - i) % 2 == 1 then
      d = d * 2
      if d > 9 then d = d - 9 end
    end
    sum = sum + d
  end
  return sum % 10 == 0
end

-- run is the place of the last of the digits that begin here.
local function run(text, at)
  local _, stop = string.find(text, "^%d+", at)
  while true do
    local _, more = string.find(text, "^[ -]%d+", stop + 1)
    if not more then return stop end
    stop = more
  end
end

function mask(text)
  local out, at = {}, 1
  local start = string.find(text, "%d")
  while start do
    local stop = run(text, start)
    local digits = string.gsub(string.sub(text, start, stop), "[ -]", "")
    if #digits >= 13 and #digits <= 19 and luhn(digits) then
      out[#out + 1] = string.sub(text, at, start - 1)
      out[#out + 1] = "[card]"
      at = stop + 1
    end
    start = string.find(text, "%d", stop + 1)
  end
  out[#out + 1] = string.sub(text, at)
  return table.concat(out)
end
