propose --store STORE -f ../policies --resource trnv1:rsc:trip-com:redis:clusters:*
