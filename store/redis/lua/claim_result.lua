-- KEYS: the claim. Replies {1 if it is completed, result}.
local claim = read_claim(KEYS[1])
if not claim or claim.state ~= 'done' then
  return { 0, '' }
end
return { 1, claim.result }
