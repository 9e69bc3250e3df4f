lint -f broken.txt
