"use strict";
// asks the server how far the experiment is, and takes over the new page when there is one
(function () {
  const EVERY = 2000, line = document.getElementById("live");
  let version = line.dataset.version, failed = 0;

  function say(text, share, lost) {
    line.textContent = text;
    line.classList.toggle("lost", lost);
    if (share !== null) line.style.setProperty("--share", share);
  }

  async function look() {
    let wait = EVERY;
    try {
      const answer = await fetch("progress", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const now = await answer.json();
      failed = 0;
      if (now.version !== version) {
        const reply = await fetch("page", { cache: "no-store" });
        if (reply.ok) {
          const page = new DOMParser().parseFromString(await reply.text(), "text/html");
          if (window.gainful && page.getElementById("data")) { window.gainful.renew(page); version = now.version; }
          else if (page.getElementById("data")) { location.reload(); return; }
        }
      }
      say(now.text, now.planned ? now.finished / now.planned : 0, false);
      if (document.hidden) wait = 5 * EVERY;
    } catch (error) {
      failed += 1;
      say("gainful watch does not answer any more; what you see is the last page that it sent.", null, true);
      wait = Math.min(30000, EVERY * failed);
    }
    setTimeout(look, wait);
  }
  setTimeout(look, EVERY);
})();
