import { Select } from "@mantine/core";
import { memo, useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Picture, PictureNode } from "../../lib/access-graph";
import classes from "./Access.module.css";

/** offered is the maximum number of suggestions; typing narrows them. */
const offered = 100;

interface Props {
  picture: Picture;
  /** Called with the index of the node. */
  titles: string[];
  onPick: (node: PictureNode) => void;
}

/** NodeSearch finds a node of the graph by its name. */
export const NodeSearch = memo(function Finder({ picture, titles, onPick }: Props) {
  const { t } = useTranslation();
  const names = useMemo(() => picture.nodes.flatMap((node, index) => (node.focus ? [{ value: String(index), label: titles[index] ?? node.name }] : [])), [picture, titles]);
  return (
    <Select
      className={classes.grow}
      size="xs"
      searchable
      limit={offered}
      aria-label={t("accessMap.find")}
      placeholder={t("accessMap.find")}
      nothingFoundMessage={t("accessMap.findNothing")}
      data={names}
      value={null}
      onChange={(value) => {
        const node = picture.nodes[Number(value)];
        if (value !== null && node) onPick(node);
      }}
      data-testid="graph-find"
    />
  );
});
