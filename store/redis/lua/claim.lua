-- KEYS: the claim, the owner's last token. ARGV: holder, ttl, a token's life.
-- Replies {state, token, holder, result}.
local CLAIMED, HELD_ELSEWHERE, COMPLETED = 1, 2, 3

local claim = read_claim(KEYS[1])
if claim and claim.state == 'done' then
  return { COMPLETED, '0', '', claim.result }
end
if claim and claim.state == 'held' and claim.holder ~= ARGV[1] then
  return { HELD_ELSEWHERE, '0', claim.holder, '' }
end
if claim and claim.state == 'held' then
  write_claim(KEYS[1], ARGV[2])
  return { CLAIMED, claim.token, '', '' }
end
-- Also after a flush a token is above those of before.
local last = tonumber(check('token', 'GET', KEYS[2]) or '0')
local token = text(math.max(last + 1, seconds * 1e6 + micros))
redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
write_claim(KEYS[1], ARGV[2], 'token', token, 'state', 'held', 'holder', ARGV[1])
return { CLAIMED, token, '', '' }
