diff -f new -f new
