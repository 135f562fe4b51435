// Excerpts of search results begin with the page's own words, not with those of the buttons above it.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const excerpt = Search.htmlToText;
  Search.htmlToText = (source, anchor) => {
    const page = new DOMParser().parseFromString(source, "text/html");
    page.querySelectorAll(".bd-header-article, .bd-sidebar-secondary, #jb-print-docs-body, .prev-next-footer, footer")
      .forEach((part) => part.remove());
    return excerpt.call(Search, page.documentElement.outerHTML, anchor);
  };
});
