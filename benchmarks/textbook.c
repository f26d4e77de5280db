/* One EM iteration of Dawid-Skene as a careful C programmer writes it from the textbook: votes sorted by task, one
   fused pass, evidence as a sum of logarithms, log-sum-exp per task, tables worker x said x true, K at run time. */

#include <math.h>
#include <stdint.h>

/* E-step and tally. code[n] = worker * K + said; tally must be zero on entry. Returns the log-likelihood. */
double expect(int64_t n_tasks, int64_t K, const int64_t *restrict offset, const int32_t *restrict code,
              const double *restrict log_prior, const double *restrict log_said, double *restrict classes,
              double *restrict tally, double *restrict posterior)
{
    double log_likelihood = 0;
    for (int64_t i = 0; i < n_tasks; i++) {
        for (int64_t k = 0; k < K; k++) posterior[k] = log_prior[k];
        for (int64_t n = offset[i]; n < offset[i + 1]; n++) {
            const double *row = log_said + (int64_t)code[n] * K;
            for (int64_t k = 0; k < K; k++) posterior[k] += row[k];
        }
        double peak = posterior[0], total = 0;
        for (int64_t k = 1; k < K; k++) peak = posterior[k] > peak ? posterior[k] : peak;
        for (int64_t k = 0; k < K; k++) total += posterior[k] = exp(posterior[k] - peak);
        log_likelihood += peak + log(total);
        double scale = 1 / total;
        for (int64_t k = 0; k < K; k++) classes[k] += posterior[k] *= scale;
        for (int64_t n = offset[i]; n < offset[i + 1]; n++) {
            double *row = tally + (int64_t)code[n] * K;
            for (int64_t k = 0; k < K; k++) row[k] += posterior[k];
        }
    }
    return log_likelihood;
}

/* M-step with pseudo-counts: tables of logarithms for the next pass. */
void maximise(int64_t n_workers, int64_t K, double smoothing, const double *restrict classes,
              const double *restrict tally, double *restrict log_prior, double *restrict log_said)
{
    double sum = 0;
    for (int64_t k = 0; k < K; k++) sum += classes[k];
    for (int64_t k = 0; k < K; k++) log_prior[k] = log(classes[k] / sum);
    for (int64_t w = 0; w < n_workers; w++) {
        const double *count = tally + w * K * K;
        double *row = log_said + w * K * K;
        for (int64_t k = 0; k < K; k++) {
            double total = K * smoothing;
            for (int64_t said = 0; said < K; said++) total += count[said * K + k];
            for (int64_t said = 0; said < K; said++)
                row[said * K + k] = log((count[said * K + k] + smoothing) / total);
        }
    }
}
