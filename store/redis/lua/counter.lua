-- KEYS: the counter. Replies {sum}.
return { read_counter(KEYS[1]) }
