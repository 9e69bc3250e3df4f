diff -f old -f new
