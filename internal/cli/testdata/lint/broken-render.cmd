render -f broken.txt
