diff -f old -f new -o yaml
