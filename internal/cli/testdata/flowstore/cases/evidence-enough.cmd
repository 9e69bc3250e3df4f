evidence --store STORE -f ../policies --cluster m1 --threshold 60 --resource trnv1:rsc:trip-com:redis:clusters:bobs-cluster
