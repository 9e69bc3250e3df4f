evidence -f ../policies --resource x
