-- KEYS: a user's records by id, their ids in order.
-- Replies the records in order, each 'call micros record'.
local ids = check('record order', 'LRANGE', KEYS[2], 0, -1)
if #ids == 0 then
  return {}
end
return check('records', 'HMGET', KEYS[1], unpack(ids))
