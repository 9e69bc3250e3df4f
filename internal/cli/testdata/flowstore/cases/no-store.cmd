flows --store mysql:x
