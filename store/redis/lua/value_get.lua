-- KEYS: the value. Replies {1 if it is there, value}.
local entry = check('value', 'GET', KEYS[1])
if not entry then
  return { 0, '' }
end
local space = string.find(entry, ' ', 1, true)
local ends = space and tonumber(string.sub(entry, 1, space - 1))
if not ends then
  fail('value', 'what it holds has no end')
end
if ends <= now then
  redis.call('DEL', KEYS[1])
  return { 0, '' }
end
return { 1, string.sub(entry, space + 1) }
