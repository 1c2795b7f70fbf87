// A response as bytes.
#include <array>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/server/http_message.h"

namespace fcp {
namespace {

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return status < 500 ? "Error" : "Internal Server Error";
  }
}

}  // namespace

std::string http_date(std::time_t time) {
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[40];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                kMonths[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour,
                parts.tm_min, parts.tm_sec);
  return text;
}

std::string http_head(const HttpResponse& response, bool keep_alive, std::time_t now) {
  std::string text = concat("HTTP/1.1 ", response.status, " ", reason_of(response.status),
                            "\r\nDate: ", http_date(now), "\r\nContent-Type: ", response.type,
                            "\r\nContent-Length: ", response.body.size(),
                            "\r\nConnection: ", keep_alive ? "keep-alive" : "close", "\r\n");
  for (const auto& [name, value] : response.headers) text += concat(name, ": ", value, "\r\n");
  return text + "\r\n";
}

HttpResponse json_response(const nlohmann::ordered_json& json) {
  return {.body = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

HttpResponse error_response(int status, const std::string& message) {
  HttpResponse response = json_response({{"error", message}});
  response.status = status;
  return response;
}

HttpResponse not_allowed(const std::string& methods) {
  HttpResponse response = error_response(405, concat("expected ", methods));
  response.headers["Allow"] = methods;
  return response;
}

std::optional<HttpResponse> foreign_page_response(const HttpRequest& request) {
  if (request.reads()) return std::nullopt;
  const std::string type = request.header("content-type");
  for (const char* form : {"text/plain", "multipart/form-data"}) {
    if (!type.starts_with(form)) continue;
    return error_response(415, concat("the Content-Type ", form,
                                      " is what web pages send; say "
                                      "application/json"));
  }
  if (request.header("sec-fetch-site") != "cross-site") return std::nullopt;
  return error_response(403, "a page of another site must not send this");
}

}  // namespace fcp
