# How to run it: deploy/README.md.

FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json *.ts ./
COPY bin bin
COPY config config
COPY lib lib
COPY plugins plugins
COPY routes routes
RUN npm run build

FROM node:22-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund && npm cache clean --force
COPY LICENSE ./
COPY config/*.yaml config/
COPY web web
COPY --from=build /app/dist dist
# The image's own unprivileged user. Nothing below /app is writable for it.
USER node
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.FASTIFY_PORT || process.env.PORT || 8080}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# No npm and no shell between the runtime and Node: SIGTERM has to arrive.
CMD ["node", "dist/bin/breakwater.js", "start", "-a", "0.0.0.0"]
