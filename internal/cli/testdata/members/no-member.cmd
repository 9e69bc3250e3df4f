render -f classes.yaml objects.yaml --cluster m9
