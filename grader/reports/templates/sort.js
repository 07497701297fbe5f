for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const down = header.getAttribute("aria-sort") === "ascending";
      const key = (row) => row.cells[place].dataset.key ?? row.cells[place].textContent.trim();
      const compare = (one, two) => {
        const [a, b] = [key(one), key(two)];
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = isNaN(a - b) ? a.localeCompare(b, undefined, {numeric: true}) : a - b;
        return down ? -order : order;
      };
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
    });
  });
}
