flows --store STORE --subject trnv1:rsc:trip-com:iam:sa:app/none
