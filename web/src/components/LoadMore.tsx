import { Button, Center } from "@mantine/core";
import { useTranslation } from "react-i18next";

interface Props {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}

export function LoadMore({ query }: Props) {
  const { t } = useTranslation();
  if (!query.hasNextPage) return null;
  return (
    <Center mt="md">
      <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()} data-testid="load-more">
        {t("action.more")}
      </Button>
    </Center>
  );
}
