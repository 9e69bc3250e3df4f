diff -f old -f new -f new
